{{ config(materialized='table', file_format='parquet') }}

select user_id, min(clicked_at) as visited_at from {{ ref('clicks') }} group by user_id
