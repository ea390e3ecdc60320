-- Without cube_size, the number of rows decides: a table as small as this one is a single file.
{{ config(
    columns_to_index=['o_custkey:hash', 'o_orderdate'],
) }}

select * from {{ source('files', 'orders') }}
