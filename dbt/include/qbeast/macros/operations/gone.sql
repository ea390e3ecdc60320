{# Operations that the format had until version 0.6.0. #}
{% macro analyze() %}
  {% if execute %}
    {% do exceptions.raise_compiler_error(
        '`analyze` left the Qbeast format with version 0.6.0, for cubes are no longer replicated: '
        ~ 'use `dbt run-operation optimize`, which rewrites what is worth rewriting') %}
  {% endif %}
{% endmacro %}


{% macro replicate() %}
  {% if execute %}
    {% do exceptions.raise_compiler_error(
        '`replicate` left the Qbeast format with version 0.6.0, for cubes are no longer replicated: '
        ~ 'use `dbt run-operation optimize`, which rewrites what is worth rewriting') %}
  {% endif %}
{% endmacro %}
