{# dbt-spark's cast, but NULL for a value that does not fit the type, also in ANSI mode. dbt casts the
   values of a unit test's fixture by this macro too: one that does not fit stays an error. #}
{% macro qbeast__safe_cast(field, type) %}
  {%- set is_of_fixture = 'macro.dbt.format_row' in context_macro_stack.call_stack -%}
  {# The text of such a column is SQL, which escape_single_quotes() has escaped. #}
  {%- if is_of_fixture and field is string and cast_from_string_unsupported_for(type) -%}
    {%- set parts = [] -%}
    {%- for part in field.split('\\\\') -%}
      {% do parts.append(part | replace("\\'", "'")) %}
    {%- endfor -%}
    {%- set field = parts | join('\\') -%}
  {%- endif -%}
  {{ return(('' if is_of_fixture else 'try_') ~ (spark__safe_cast(field, type) | trim)) }}
{% endmacro %}
