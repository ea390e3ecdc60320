{# Logs what an operation did, one line for each table, and fails if any table failed. #}
{% macro qbeast_run_operation(name, arguments) %}
  {% if execute %}
    {% set report = adapter.qbeast_operation(name, graph, arguments) %}
    {% for line in report.lines %}
      {% do log(line, info=true) %}
    {% endfor %}
    {% if report.failure %}
      {% do exceptions.raise_compiler_error(report.failure) %}
    {% endif %}
  {% endif %}
{% endmacro %}
