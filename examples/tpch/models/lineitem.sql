-- cube_size is the target number of rows per file. It is small here, so that even this small table
-- has enough files for a sample to skip most of them.
{{ config(
    columns_to_index=['l_partkey', 'l_shipdate'],
    cube_size=25000,
) }}

select * from {{ source('files', 'lineitem') }}
