{# dbt-spark's macro ignores the order. Spark's own function keeps it but has no limit on the number of
   values, so they are joined by a character that texts do not contain, split again and sliced. As in
   dbt-spark, the text of a group without values is empty. #}
{% macro qbeast__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- if not order_by_clause -%}
    {{ return(spark__listagg(measure, delimiter_text, order_by_clause, limit_num)) }}
  {%- endif -%}
  {%- set joined -%}
    listagg({{ measure }}, {{ 'chr(1)' if limit_num else delimiter_text }}) within group ({{ order_by_clause }})
  {%- endset -%}
  {%- if not limit_num -%}
    {{ return('coalesce(' ~ joined ~ ", '')") }}
  {%- endif -%}
  {{ return('coalesce(array_join(slice(split(' ~ joined ~ ', chr(1)), 1, ' ~ limit_num ~ '), ' ~ delimiter_text ~ "), '')") }}
{%- endmacro %}
