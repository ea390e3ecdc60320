{# A table that runs add to; with `columns_to_index`, it is stored with an index. #}
{% materialization incremental, adapter='qbeast', supported_languages=['sql', 'python'] %}
  {{ return(qbeast_build_model(adapter.qbeast_is_indexed(config))) }}
{% endmaterialization %}
