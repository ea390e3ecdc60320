{# A table; with `columns_to_index`, the model's own or its folder's, one with an index. #}
{% materialization table, adapter='qbeast', supported_languages=['sql', 'python'] %}
  {{ return(qbeast_build_model(adapter.qbeast_is_indexed(config))) }}
{% endmaterialization %}
