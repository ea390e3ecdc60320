{# dbt-spark reads microseconds from the text of a timestamp, which often has none; in ANSI mode, that is
   an error of Spark. #}
{% macro qbeast__datediff(first_date, second_date, datepart) %}
  {%- set unit = {'millisecond': 'unix_millis', 'microsecond': 'unix_micros'}.get(datepart) -%}
  {%- if not unit -%}
    {{ return(spark__datediff(first_date, second_date, datepart)) }}
  {%- endif -%}
  ({{ unit }}(cast({{ second_date }} as timestamp_ltz)) - {{ unit }}(cast({{ first_date }} as timestamp_ltz)))
{% endmacro %}
