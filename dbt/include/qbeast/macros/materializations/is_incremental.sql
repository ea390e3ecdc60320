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


{# dbt's own rule, but a retry of single batches never replaces those that succeeded: it repeats the flag
   --full-refresh of the run that failed. #}
{% macro should_full_refresh() %}
  {%- set of_model = config.get('full_refresh') -%}
  {{ return((flags.FULL_REFRESH if of_model is none else of_model)
            and not adapter.qbeast_is_retry_of_batches()) }}
{% endmacro %}
