{# A table; with `columns_to_index` of the model or its folder, it is stored with an index. #}
{% materialization table, adapter='qbeast', supported_languages=['sql', 'python'] %}
  {{ return(qbeast_build_model(adapter.qbeast_is_indexed(config))) }}
{% endmaterialization %}
