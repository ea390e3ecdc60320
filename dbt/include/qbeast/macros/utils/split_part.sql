{# dbt-spark's macro takes most of the delimiter as a pattern, and a part that is not there is an error of
   Spark in ANSI mode. Here, the delimiter is taken as it is, and such a part is NULL. #}
{% macro qbeast__split_part(string_text, delimiter_text, part_number) %}
  {%- set parts -%}
    split({{ string_text }}, concat(r'\Q', {{ delimiter_text }}, r'\E'))
  {%- endset -%}
  {%- if part_number < 0 -%}
    {{ return('get(' ~ parts ~ ', size(' ~ parts ~ ') + ' ~ part_number ~ ')') }}
  {%- endif -%}
  {{ return('get(' ~ parts ~ ', ' ~ [part_number - 1, 0] | max ~ ')') }}
{% endmacro %}
