{# dbt compares names of columns as they are written. Spark finds a column whatever the case of its
   name: one that is written in another case is neither new nor gone. #}
{% macro diff_columns(source_columns, target_columns) %}
  {%- set present = target_columns | map(attribute='name') | map('lower') | list -%}
  {%- set missing = [] -%}
  {%- for column in source_columns if column.name | lower not in present -%}
    {% do missing.append(column) %}
  {%- endfor -%}
  {{ return(missing) }}
{% endmacro %}


{% macro qbeast__diff_column_data_types(source_columns, target_columns) %}
  {%- set present = {} -%}
  {%- for column in target_columns -%}
    {% do present.update({column.name | lower: column}) %}
  {%- endfor -%}
  {%- set retyped = [] -%}
  {%- for column in source_columns if column.name | lower in present -%}
    {%- set stored = present[column.name | lower] -%}
    {%- if column.expanded_data_type != stored.expanded_data_type
           and not column.can_expand_to(other_column=stored) -%}
      {% do retyped.append({'column_name': stored.name, 'new_type': column.expanded_data_type}) %}
    {%- endif -%}
  {%- endfor -%}
  {{ return(retyped) }}
{% endmacro %}


{% macro qbeast__format_column(column) %}
  {%- set formatted = default__format_column(column) -%}
  {% do formatted.update({'name': column.name | lower}) %}
  {{ return(formatted) }}
{% endmacro %}
