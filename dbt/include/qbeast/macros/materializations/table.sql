{# dbt-spark's tables; with `columns_to_index`, the model's own or its folder's, a qbeast table. #}
{% materialization table, adapter='qbeast', supported_languages=['sql', 'python'] %}
  {% if adapter.qbeast_is_indexed(config) %}
    {{ return(qbeast_build_model()) }}
  {% endif %}
  {{ return(materialization_table_spark()) }}
{% endmaterialization %}
