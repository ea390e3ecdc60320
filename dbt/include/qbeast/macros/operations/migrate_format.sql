{# dbt run-operation migrate_format --args '{table: raw.events, dry_run: true}'
   Converts tables of qbeast-spark 0.2 to 0.5, by name, path or model, to the current tags. #}
{% macro migrate_format(table=none, models=none, dry_run=none) %}
  {{ qbeast_run_operation('migrate_format', {'table': table, 'models': models, 'dry_run': dry_run}) }}
{% endmacro %}
