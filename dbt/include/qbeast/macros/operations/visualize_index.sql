{# dbt run-operation visualize_index --args '{models: [events], path: index.html}' #}
{% macro visualize_index(models=none, path=none, revision_id=none, columns=none) %}
  {{ qbeast_run_operation('visualize_index', {
      'models': models, 'path': path, 'revision_id': revision_id, 'columns': columns}) }}
{% endmacro %}
