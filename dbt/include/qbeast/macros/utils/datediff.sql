{# The boundaries of months, times and so on that lie between, as in other adapters. dbt-spark rounds
   times up, is wrong for ends of months and some quarters, and reads microseconds from a text. #}
{% macro qbeast__datediff(first_date, second_date, datepart) %}
  {%- if datepart in ('hour', 'minute', 'second', 'millisecond', 'microsecond') -%}
    timestampdiff({{ datepart }}, date_trunc('{{ datepart }}', {{ first_date }}), date_trunc('{{ datepart }}', {{ second_date }}))
  {%- elif datepart == 'month' -%}
    ((year({{ second_date }}) - year({{ first_date }})) * 12 + month({{ second_date }}) - month({{ first_date }}))
  {%- elif datepart == 'quarter' -%}
    ((year({{ second_date }}) - year({{ first_date }})) * 4 + quarter({{ second_date }}) - quarter({{ first_date }}))
  {%- else -%}
    ({{ spark__datediff(first_date, second_date, datepart) }})
  {%- endif -%}
{% endmacro %}
