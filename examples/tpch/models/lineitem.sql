-- cube_size is the number of rows that a file is meant to hold. It is small here, so that even
-- this small table has enough files for a sample to leave most of them unread.
{{ config(
    columns_to_index=['l_partkey', 'l_shipdate'],
    cube_size=25000,
) }}

select * from {{ source('files', 'lineitem') }}
