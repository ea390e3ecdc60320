{# Operations that qbeast-spark 0.6.0 removed from the format. #}
{% macro analyze() %}
  {# A macro takes any arguments only if it names these two. #}
  {% set _ = (varargs, kwargs) %}
  {{ qbeast_removed_operation('analyze') }}
{% endmacro %}


{% macro replicate() %}
  {% set _ = (varargs, kwargs) %}
  {{ qbeast_removed_operation('replicate') }}
{% endmacro %}


{% macro qbeast_removed_operation(name) %}
  {% if execute %}
    {% do exceptions.raise_compiler_error(
        '`' ~ name ~ '` was removed in qbeast-spark 0.6.0, whose format no longer replicates cubes. '
        ~ 'Use `dbt run-operation optimize` instead') %}
  {% endif %}
{% endmacro %}
