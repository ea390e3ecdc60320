{# Operations that version 0.6.0 removed from the format. #}
{% macro analyze() %}
  {% if execute %}
    {% do exceptions.raise_compiler_error(
        '`analyze` was removed in version 0.6.0 of the Qbeast format, which no longer replicates cubes. '
        ~ 'Use `dbt run-operation optimize` instead') %}
  {% endif %}
{% endmacro %}


{% macro replicate() %}
  {% if execute %}
    {% do exceptions.raise_compiler_error(
        '`replicate` was removed in version 0.6.0 of the Qbeast format, which no longer replicates cubes. '
        ~ 'Use `dbt run-operation optimize` instead') %}
  {% endif %}
{% endmacro %}
