{# dbt-spark's cast, but NULL for a value that does not fit the type, also in ANSI mode. dbt casts the
   values of a unit test's fixture by this macro too: one that does not fit stays an error. #}
{% macro qbeast__safe_cast(field, type) %}
  {%- set is_of_fixture = 'macro.dbt.format_row' in context_macro_stack.call_stack -%}
  {{ return(('' if is_of_fixture else 'try_') ~ (spark__safe_cast(field, type) | trim)) }}
{% endmacro %}
