{# dbt-spark's macro ignores the order. Spark's own function keeps it but has no limit on the number of
   values, so they are joined by a character that texts do not contain, split again and sliced. #}
{% macro qbeast__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- if not order_by_clause -%}
    {{ return(spark__listagg(measure, delimiter_text, order_by_clause, limit_num)) }}
  {%- endif -%}
  {%- set joined -%}
    listagg({{ measure }}, {{ 'chr(1)' if limit_num else delimiter_text }}) within group ({{ order_by_clause }})
  {%- endset -%}
  {%- if not limit_num -%}
    {{ return(joined) }}
  {%- endif -%}
  {{ return('array_join(slice(split(' ~ joined ~ ', chr(1)), 1, ' ~ limit_num ~ '), ' ~ delimiter_text ~ ')') }}
{%- endmacro %}
