{{ config(materialized='incremental', unique_key='session_id') }}

select id as session_id, timestamp_seconds(1767225600 + id * 60) as started_at from range(2000)
