-- The orders of the first `10 + day` days: 100 new ones a day, and a tenth of the older ones changed.
{% set orders = 1000 + 100 * (var('day', 0) | int) %}
{{ config(materialized='ephemeral') }}

select
    id as order_id,
    timestamp_seconds(1767225600 + id * 864) as ordered_at,
    timestamp_seconds(1767225600 + if(id % 10 = 0, {{ orders - 1 }}, id) * 864) as changed_at,
    cast(id % 50 as double) as amount
from range({{ orders }})
