{# Creates a view of the records to close and to insert, with the columns of the table and one for the
   action. The source's new columns and fields are added to the table first, and the source is read as
   the table stores it, so that nested fields are compared by name. #}
{% macro qbeast_snapshot_changes(strategy, node, target_relation, columns) %}
  {%- set changes = target_relation.incorporate(
      path={'identifier': target_relation.identifier ~ '__dbt_tmp'}, type='view'
    ).include(database=false, schema=false) -%}
  {%- set source = changes.incorporate(path={'identifier': target_relation.identifier ~ '__dbt_source'}) -%}
  {%- set own_columns = dict(columns) -%}
  {%- if strategy.hard_deletes != 'new_record' -%}
    {% do own_columns.pop('dbt_is_deleted') %}
  {%- endif -%}
  {% do adapter.qbeast_create_snapshot_view(
      source, node['compiled_code'], target_relation, own_columns.values() | list) %}
  {%- set by_check_cols = config.get('strategy') == 'check' -%}
  {%- set compared = snapshot_check_all_get_existing_columns(
      node, true, config.get('check_cols') if by_check_cols else 'all')[1] -%}
  {% do strategy.update({'compared_columns': compared}) %}
  {%- call statement('build_snapshot_staging_relation') -%}
    {{ create_temporary_view(
        changes, snapshot_staging_table(strategy, 'select * from ' ~ source, target_relation)) }}
  {%- endcall -%}
  {{ return(changes) }}
{% endmacro %}


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
  {%- set valid_type = types[columns.dbt_valid_from | lower] -%}
  {%- set now = 'cast(' ~ run_time ~ ' as ' ~ valid_type ~ ')' -%}
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
    select *, {{ qbeast_snapshot_key_columns(keys) }}, true as dbt_is_present,
      {{ strategy.updated_at }} as dbt_row_updated_at,
      {{ strategy.scd_id }} as dbt_row_scd_id
    from snapshot_query
  ),

  {# Strategies look for changes since `dbt_valid_from`. The record of a row that came back begins
     later than the row's `updated_at`, and a change in between must not be missed. #}
  snapshotted_data as (
    select * except ({{ columns.dbt_valid_from }}), {{ qbeast_snapshot_key_columns(keys) }}, true as dbt_is_present,
      {{ columns.dbt_updated_at }} as {{ columns.dbt_valid_from }},
      {{ columns.dbt_valid_from }} as dbt_known_until,
      {{ 'coalesce(' ~ columns.dbt_is_deleted ~ " = 'True', false)" if records_deletes else 'false' }} as dbt_was_gone
    from {{ target_relation }}
    where {{ is_open }}
  ),

  {# If the last record of a key ends in the future, and no record begins there, it was open under an earlier
     `dbt_valid_to_current`. The margin of two days covers clocks and time zones. An `updated_at` that is a
     number or a text has no such end. #}
  closed_data as (
    select {{ qbeast_snapshot_key_columns(keys) }}, true as dbt_is_present,
      max(greatest({{ columns.dbt_valid_from }}, {{ columns.dbt_valid_to }})) as dbt_known_until,
      {% if valid_type in ('date', 'timestamp', 'timestamp_ntz') -%}
      if(max({{ columns.dbt_valid_to }}) > greatest(max({{ columns.dbt_valid_from }}), {{ now }} + interval 2 days),
        max({{ columns.dbt_valid_to }}), null) as dbt_open_until
      {%- else -%}
      cast(null as {{ valid_type }}) as dbt_open_until
      {%- endif %}
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


{% macro qbeast_without_shared_keys(keys, data) -%}
  (
    select /*+ broadcast(shared_keys) */ {{ data }}.*
    from {{ data }} left anti join shared_keys on {{ qbeast_snapshot_same_key(keys, 'shared_keys', data) }}
  ) as {{ data }}
{%- endmacro %}
