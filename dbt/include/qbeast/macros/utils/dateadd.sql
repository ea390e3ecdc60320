{# dbt-spark multiplies only the last term of an interval such as `n - 1`, counts whole seconds, and adds
   days of 24 hours. #}
{% macro qbeast__dateadd(datepart, interval, from_date_or_timestamp) %}
  timestampadd({{ datepart }}, cast(({{ interval }}) as int), to_timestamp({{ from_date_or_timestamp }}))
{% endmacro %}
