{# dbt run-operation vacuum --args '{models: [events]}' tells how many files of old versions could be
   deleted; with `dry_run: false` they are. `hours` names a longer retention than the table's own. #}
{% macro vacuum(models=none, hours=none, dry_run=none) %}
  {{ qbeast_operation('vacuum', {'models': models, 'hours': hours, 'dry_run': dry_run}) }}
{% endmacro %}
