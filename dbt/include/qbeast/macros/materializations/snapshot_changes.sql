{# The records to close and to insert, from one comparison of the source with the open records.

   dbt's own query treats two NULLs in a key as different, so it adds or closes a record on every run.
   It also gives a row that comes back with its old `updated_at` the `dbt_scd_id` of the closed record,
   which a merge finds and leaves closed. Here, NULL is a key value like any other. A record begins at
   its row's `updated_at` only if that is later than every date that the table has for its key;
   otherwise it begins at the time of this run, with its own id.

   Where several rows or records share a key with a NULL, nothing shows which belong together. They
   are left out of the comparison: each row must have a record with its values, or the run fails.

   `row_changed` comes from the strategy and compares snapshotted_data with source_data. #}
{% macro qbeast__snapshot_staging_table(strategy, source_sql, target_relation) -%}
  {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- set keys = qbeast_snapshot_keys(strategy) -%}
  {%- set records_deletes = strategy.hard_deletes == 'new_record' -%}
  {%- set closes_deletes = records_deletes or strategy.hard_deletes == 'invalidate' -%}
  {%- set types = {} -%}
  {%- for column in adapter.get_columns_in_relation(target_relation) -%}
    {% do types.update({column.name | lower: column.dtype}) %}
  {%- endfor -%}
  {%- set run_time = snapshot_get_time() | trim -%}
  {%- set now = 'cast(' ~ run_time ~ ' as ' ~ types[columns.dbt_valid_from | lower] ~ ')' -%}
  {%- set current = config.get('dbt_valid_to_current') or 'null' -%}
  {%- set is_open = '(' ~ columns.dbt_valid_to ~ ' is null or ' ~ columns.dbt_valid_to ~ ' <=> ' ~ current ~ ')' -%}
  {%- set known_until = 'coalesce(snapshotted_data.dbt_known_until, if(closed_data.dbt_open_until is null, '
                        ~ 'closed_data.dbt_known_until, raise_error('
                        ~ qbeast_other_valid_to_message(columns, target_relation) ~ ')))' -%}
  {%- set key_names = [] -%}
  {%- for key in keys -%}
    {% do key_names.append('dbt_unique_key_' ~ loop.index) %}
  {%- endfor -%}
  {%- set has_null = key_names | join(' is null or ') ~ ' is null' -%}
  {%- set source_columns = get_columns_in_query(source_sql) -%}
  with snapshot_query as (

    {{ source_sql }}

  ),

  source_data as (
    select *, {{ qbeast_snapshot_key(keys) }}, true as dbt_is_present,
      {{ strategy.updated_at }} as dbt_row_updated_at,
      {{ strategy.scd_id }} as dbt_row_scd_id
    from snapshot_query
  ),

  {# Strategies look for changes since `dbt_valid_from`. The record of a row that came back begins
     later than the row's `updated_at`, and a change in between must not be missed. #}
  snapshotted_data as (
    select * except ({{ columns.dbt_valid_from }}), {{ qbeast_snapshot_key(keys) }}, true as dbt_is_present,
      {{ columns.dbt_updated_at }} as {{ columns.dbt_valid_from }},
      {{ columns.dbt_valid_from }} as dbt_known_until,
      {{ 'coalesce(' ~ columns.dbt_is_deleted ~ " = 'True', false)" if records_deletes else 'false' }} as dbt_was_gone
    from {{ target_relation }}
    where {{ is_open }}
  ),

  {# A key whose last record ends in the future, and not where a record begins, was left open by another
     `dbt_valid_to_current`. Two days are more than clocks and time zones differ by. #}
  closed_data as (
    select {{ qbeast_snapshot_key(keys) }}, true as dbt_is_present,
      max(greatest({{ columns.dbt_valid_from }}, {{ columns.dbt_valid_to }})) as dbt_known_until,
      if(max({{ columns.dbt_valid_to }}) > greatest(max({{ columns.dbt_valid_from }}), {{ now }} + interval 2 days),
        max({{ columns.dbt_valid_to }}), null) as dbt_open_until
    from {{ target_relation }}
    where not {{ is_open }}
    group by all
  ),

  {# For each key with a NULL: the numbers of rows and of open records with the same values. #}
  {%- set by_updated_at = config.get('strategy') == 'timestamp' %}
  {%- set row_values = ['dbt_row_updated_at'] if by_updated_at else strategy.compared_columns %}
  {%- set record_values = [columns.dbt_updated_at] if by_updated_at else strategy.compared_columns %}
  null_keys as (
    select {{ key_names | join(', ') }}, sum(dbt_rows) as dbt_rows,
      sum(dbt_records) as dbt_records, sum(dbt_valid_records) as dbt_valid_records
    from (
      select {{ (key_names + row_values) | join(', ') }},
        1 as dbt_rows, 0 as dbt_records, 0 as dbt_valid_records
      from source_data
      where {{ has_null }}
      union all
      select {{ (key_names + record_values) | join(', ') }}, 0, 1, if(dbt_was_gone, 0, 1)
      from snapshotted_data
      where {{ has_null }}
    )
    group by {{ (key_names + row_values) | join(', ') }}
  ),

  shared_keys as (
    select {{ key_names | join(', ') }} from null_keys
    group by all
    having case
      when least(sum(dbt_rows), sum(dbt_records)) = 0 then false
      when greatest(sum(dbt_rows), sum(dbt_records)) = 1 then false
      when max(dbt_rows {{ '!=' if closes_deletes else '>' }} dbt_valid_records)
        then raise_error({{ qbeast_shared_key_message(keys, target_relation) }})
      else true
    end
  ),

  compared as (
    select
      {%- for name in source_columns %}
      {%- set column = adapter.quote(name) %}
      {%- if records_deletes %}
      if(source_data.dbt_is_present, source_data.{{ column }}, snapshotted_data.{{ column }}) as {{ column }},
      {%- else %}
      source_data.{{ column }},
      {%- endif %}
      {%- endfor %}
      source_data.dbt_row_updated_at,
      source_data.dbt_row_scd_id,
      snapshotted_data.{{ columns.dbt_scd_id }} as dbt_open_scd_id,
      {{ known_until }} as dbt_known_until,
      case
        when source_data.dbt_is_present is null then false
        when coalesce(snapshotted_data.dbt_is_present, closed_data.dbt_is_present) is null then true
        else coalesce(source_data.dbt_row_updated_at > {{ known_until }}, false)
      end as dbt_begins_at_updated_at,
      snapshotted_data.dbt_is_present is null as dbt_is_new,
      source_data.dbt_is_present is null as dbt_is_gone,
      coalesce(snapshotted_data.dbt_was_gone, false) as dbt_was_gone,
      {{ strategy.row_changed }} as dbt_is_changed
    from {{ qbeast_without_shared_keys(keys, 'source_data') }}
    {% if closes_deletes -%}
    full join {{ qbeast_without_shared_keys(keys, 'snapshotted_data') }}
    {%- else -%}
    left join snapshotted_data
    {%- endif %}
      on {{ qbeast_snapshot_same_key(keys, 'snapshotted_data', 'source_data') }}
    left join closed_data
      on snapshotted_data.dbt_is_present is null
      and {{ qbeast_snapshot_same_key(keys, 'closed_data', 'source_data') }}
  ),

  changes as (
    select *,
      if(dbt_begins_at_updated_at, dbt_row_updated_at, greatest({{ now }}, dbt_known_until)) as dbt_changed_at,
      explode(case
        when dbt_is_gone and not dbt_was_gone then array('delete' {{- ", 'insert'" if records_deletes }})
        when dbt_is_new then array('insert')
        when not dbt_is_gone and (dbt_is_changed or dbt_was_gone) then array('update', 'insert')
      end) as dbt_change_type
    from compared
  )

  select
    dbt_change_type,
    {%- for name in source_columns %}
    {{ adapter.quote(name) }},
    {%- endfor %}
    {{ 'if(dbt_is_gone, ' ~ now ~ ', dbt_row_updated_at)' if closes_deletes else 'dbt_row_updated_at' }} as {{ columns.dbt_updated_at }},
    dbt_changed_at as {{ columns.dbt_valid_from }},
    if(dbt_change_type = 'insert', {{ current }}, dbt_changed_at) as {{ columns.dbt_valid_to }},
    case
      when dbt_change_type != 'insert' then dbt_open_scd_id
      when dbt_begins_at_updated_at then dbt_row_scd_id
      else {{ snapshot_hash_arguments(['coalesce(dbt_row_scd_id, dbt_open_scd_id)', run_time]) }}
    end as {{ columns.dbt_scd_id }}
    {%- if records_deletes %},
    if(dbt_is_gone, 'True', 'False') as {{ columns.dbt_is_deleted }}
    {%- endif %}
  from changes
{%- endmacro %}


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


{% macro qbeast_snapshot_key(keys) -%}
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


{% macro qbeast_without_shared_keys(keys, data) -%}
  (
    select /*+ broadcast(shared_keys) */ {{ data }}.*
    from {{ data }} left anti join shared_keys on {{ qbeast_snapshot_same_key(keys, 'shared_keys', data) }}
  ) as {{ data }}
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


{# dbt's own macro compares column names with their case, which Spark ignores. A column spelled in
   another case would count as new, and every row as changed, on every run. #}
{% macro snapshot_check_all_get_existing_columns(node, target_exists, check_cols_config) -%}
  {%- if not target_exists -%}
    {{ return((false, [])) }}
  {%- endif -%}
  {%- if check_cols_config == 'all' -%}
    {%- set checked = get_columns_in_query(node['compiled_code']) -%}
  {%- elif check_cols_config is iterable and check_cols_config | length > 0 -%}
    {%- set checked = get_columns_in_query(
        'select ' ~ check_cols_config | join(', ') ~ ' from (\n' ~ node['compiled_code'] ~ '\n) as checked') -%}
  {%- else -%}
    {% do exceptions.raise_compiler_error("Invalid value for 'check_cols': " ~ check_cols_config) %}
  {%- endif -%}
  {%- set target = adapter.get_relation(database=node.database, schema=node.schema, identifier=node.alias) -%}
  {%- set present = adapter.get_columns_in_relation(target) | map(attribute='name') | map('lower') | list -%}
  {%- set common = [] -%}
  {%- for name in checked if name | lower in present -%}
    {% do common.append(adapter.quote(name)) %}
  {%- endfor -%}
  {{ return((common | length < checked | length, common)) }}
{%- endmacro %}
