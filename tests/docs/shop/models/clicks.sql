{{ config(materialized='table') }}

select id as click_id, id % 700 as user_id, timestamp_seconds(1767225600 + id * 60) as clicked_at
from range(5000)
