{# dbt run-operation estimate --args '{models: [events], expression: avg(price), tolerance: 0.02}' #}
{% macro estimate(
    expression=none, models=none, where=none, group_by=none, tolerance=none, confidence=none) %}
  {{ qbeast_run_operation('estimate', {
      'models': models, 'expression': expression, 'where': where, 'group_by': group_by,
      'tolerance': tolerance, 'confidence': confidence}) }}
{% endmacro %}
