{# dbt run-operation check_index --args '{models: [events]}'; fails if an index has a problem. #}
{% macro check_index(models=none) %}
  {{ qbeast_run_operation('check_index', {'models': models}) }}
{% endmacro %}
