{# dbt run-operation vacuum --args '{models: [events]}' prints how many files of old versions it would
   delete; with `dry_run: false` it deletes them. `hours` sets a longer retention than the table's. #}
{% macro vacuum(models=none, hours=none, dry_run=none) %}
  {{ qbeast_run_operation('vacuum', {'models': models, 'hours': hours, 'dry_run': dry_run}) }}
{% endmacro %}
