{% macro qbeast__format_column(column) %}
  {%- set formatted = default__format_column(column) -%}
  {% do formatted.update({'name': column.name | lower}) %}
  {{ return(formatted) }}
{% endmacro %}
