{# dbt run-operation index_metrics --args '{models: [events]}' #}
{% macro index_metrics(models=none, revision_id=none) %}
  {{ qbeast_run_operation('index_metrics', {'models': models, 'revision_id': revision_id}) }}
{% endmacro %}
