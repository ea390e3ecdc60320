-- Without a cube_size the rows decide: a table as small as this one is a single file.
{{ config(
    columns_to_index=['o_custkey:hash', 'o_orderdate'],
) }}

select * from {{ source('files', 'orders') }}
