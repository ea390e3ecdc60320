{# The columns of a snapshot's key, as a list. #}
{% macro qbeast_snapshot_keys(strategy) %}
  {{ return(strategy.unique_key if strategy.unique_key | is_list else [strategy.unique_key]) }}
{% endmacro %}


{# The strategy's id of a row, except where rows could share it, because a record is closed by its id.
   Rows may share a key that has a NULL, so there each row gets its own id, which stays its own after
   `unique_key` has got columns that tell the rows apart. And the strategy joins the columns of a key
   with `|`, so with that character in a column, ('a|b', 'c') and ('a', 'b|c') would have one id. #}
{% macro qbeast_snapshot_scd_id(strategy) -%}
  {%- set keys = qbeast_snapshot_keys(strategy) -%}
  {%- set whole_row = "to_json(struct(*), map('ignoreNullFields', 'false'))" -%}
  {%- set ambiguous = [] -%}
  {%- set hashed = [strategy.scd_id] -%}
  {%- for key in keys -%}
    {% do ambiguous.append("contains(cast((" ~ key ~ ") as string), '|')") %}
    {% do hashed.append('md5(cast((' ~ key ~ ') as string))') %}
  {%- endfor -%}
  case
    when (
      {%- for key in keys -%}
        ({{ key }}) is null {{- ' or ' if not loop.last }}
      {%- endfor -%}
    ) then {{ snapshot_hash_arguments([strategy.scd_id, whole_row]) }}
    {%- if keys | length > 1 %}
    when {{ ambiguous | join(' or ') }} then {{ snapshot_hash_arguments(hashed) }}
    {%- endif %}
    else {{ strategy.scd_id }}
  end
{%- endmacro %}


{% macro qbeast_snapshot_key_columns(keys) -%}
  {%- for key in keys -%}
    {{ key }} as dbt_unique_key_{{ loop.index }}{{ ', ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}


{% macro qbeast_snapshot_same_key(keys, data, other) -%}
  {%- for key in keys -%}
    {{ data }}.dbt_unique_key_{{ loop.index }} <=> {{ other }}.dbt_unique_key_{{ loop.index }}
    {{- ' and ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}


{# The message as SQL, because it contains the values of the key. #}
{% macro qbeast_shared_key_message(keys, target_relation) -%}
  {%- set advice = 'so nothing shows which record belongs to which row. Add columns to unique_key '
                   ~ 'that tell these rows apart, or filter the rows out of the query' -%}
  concat(
    if(sum(dbt_rows) > 1, 'several rows of the source', {{ adapter.qbeast_literal('several valid records of ' ~ target_relation.identifier) }}),
    {{ adapter.qbeast_literal(' have NULL in the unique_key (' ~ keys | join(', ') ~ ') = (') }},
    {%- for key in keys %}
    coalesce(cast(dbt_unique_key_{{ loop.index }} as string), 'NULL'), {{ "', '," if not loop.last }}
    {%- endfor %}
    '), {{ advice }}'
  )
{%- endmacro %}


{# The message as SQL, because it contains the date of the record. #}
{% macro qbeast_other_valid_to_message(columns, target_relation) -%}
  {%- set current = config.get('dbt_valid_to_current') -%}
  {%- set until = 'cast(closed_data.dbt_open_until as string)' -%}
  concat(
    {{ adapter.qbeast_literal('the valid records of ' ~ target_relation.identifier ~ ' have ' ~ columns.dbt_valid_to ~ " = '") }},
    {{ until }},
    {{ adapter.qbeast_literal("', but dbt_valid_to_current is now " ~ (current or 'not set') ~ '. Set it back to that value, or change the records before the next run: '
        ~ 'update ' ~ target_relation ~ ' set ' ~ columns.dbt_valid_to ~ ' = ' ~ (current or 'null') ~ ' where '
        ~ columns.dbt_valid_to ~ " = '") }},
    {{ until }}, "'"
  )
{%- endmacro %}
