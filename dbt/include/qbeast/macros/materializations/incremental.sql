{# dbt-spark's incremental models; with `columns_to_index` their rows go into a qbeast table. #}
{% materialization incremental, adapter='qbeast', supported_languages=['sql', 'python'] %}
  {% if adapter.qbeast_is_indexed(config) %}
    {{ return(qbeast_build_model()) }}
  {% endif %}
  {{ return(materialization_incremental_spark()) }}
{% endmaterialization %}
