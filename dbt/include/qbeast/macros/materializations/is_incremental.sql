{# dbt's own is_incremental() recognizes only materialized='incremental'. #}
{% macro is_incremental() %}
  {% if not execute %}
    {{ return(False) }}
  {% endif %}
  {% set relation = adapter.get_relation(this.database, this.schema, this.table) %}
  {{ return(relation is not none
            and relation.type == 'table'
            and adapter.qbeast_is_incremental(model.config)
            and not should_full_refresh()) }}
{% endmacro %}
