{# dbt-spark multiplies only the last term of an interval such as `n - 1`, counts whole seconds, and adds
   days of 24 hours. timestampadd() takes whole numbers, so half an hour is added as microseconds. Rounding
   keeps `61 / 7` weeks at 61 days. #}
{% macro qbeast__dateadd(datepart, interval, from_date_or_timestamp) %}
  {%- set part = datepart | lower -%}
  {%- set unit, count, digits = {
    'hour': ('microsecond', 3600000000, 0),
    'minute': ('microsecond', 60000000, 0),
    'second': ('microsecond', 1000000, 0),
    'millisecond': ('microsecond', 1000, 0),
    'week': ('day', 7, 6),
    'quarter': ('month', 3, 6),
    'year': ('month', 12, 6),
  }.get(part, (part, 1, 6)) -%}
  timestampadd({{ unit }}, cast(round(({{ interval }}) * {{ count }}L, {{ digits }}) as bigint), to_timestamp({{ from_date_or_timestamp }}))
{% endmacro %}
