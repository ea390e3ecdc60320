{{ config(
    columns_to_index=['o_custkey:hash', 'o_orderdate'],
    cube_size=5000,
) }}

select * from {{ source('files', 'orders') }}
