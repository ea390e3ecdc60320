{# In the fixtures of unit tests, a backslash is one: Spark reads it as an escape. #}
{% macro qbeast__escape_single_quotes(expression) -%}
  {%- set is_of_fixture = 'macro.dbt.format_row' in context_macro_stack.call_stack -%}
  {{ return(spark__escape_single_quotes(expression | replace('\\', '\\\\') if is_of_fixture else expression)) }}
{%- endmacro %}
