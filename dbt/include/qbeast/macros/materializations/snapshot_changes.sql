{# The rows to close and to insert, from one comparison of the source with the open rows.

   dbt's own query takes two NULLs in a key for different, so it adds or closes such a row on every
   run. And it gives a row that comes back with its old `updated_at` the `dbt_scd_id` of the row that
   was closed, which a merge finds and leaves closed. Here NULL is a value of a key like any other,
   and a row begins at its `updated_at` only if that is later than all the table knows of its key;
   otherwise it begins when this run sees it, with an id of its own.

   `row_changed` comes from the strategy and compares snapshotted_data with source_data. #}
{% macro qbeast__snapshot_staging_table(strategy, source_sql, target_relation) -%}
  {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- set keys = strategy.unique_key if strategy.unique_key | is_list else [strategy.unique_key] -%}
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
  {%- set known_until = 'coalesce(snapshotted_data.dbt_known_until, closed_data.dbt_known_until)' -%}
  {%- set key_names = [] -%}
  {%- for key in keys -%}
    {% do key_names.append('dbt_unique_key_' ~ loop.index) %}
  {%- endfor -%}
  {%- set ambiguous = 'the unique_key of ' ~ target_relation.identifier ~ ', ' ~ keys | join(', ')
                      ~ ', is NULL in several rows of the source, and which records belong to a row that '
                      ~ 'changed is not known: name columns that tell the rows apart, or leave them out' -%}
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

  repeated_keys as (
    select {{ key_names | join(', ') }} from source_data
    where {{ key_names | join(' is null or ') }} is null
    group by all having count(*) > 1
  ),

  {# Strategies look for changes since `dbt_valid_from`. A row that came back begins later than its
     `updated_at`, and a change in between must not be missed. #}
  snapshotted_data as (
    select * except ({{ columns.dbt_valid_from }}), {{ qbeast_snapshot_key(keys) }}, true as dbt_is_present,
      {{ columns.dbt_updated_at }} as {{ columns.dbt_valid_from }},
      {{ columns.dbt_valid_from }} as dbt_known_until
    from {{ target_relation }}
    where {{ is_open }}
  ),

  closed_data as (
    select {{ qbeast_snapshot_key(keys) }}, true as dbt_is_present,
      max(greatest({{ columns.dbt_valid_from }}, {{ columns.dbt_valid_to }})) as dbt_known_until
    from {{ target_relation }}
    where not {{ is_open }}
    group by all
  ),

  compared as (
    select
      {%- for name in source_columns %}
      {%- set column = adapter.quote(name) %}
      {%- if records_deletes and name | lower in types %}
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
      {%- if records_deletes %}
      coalesce(snapshotted_data.{{ columns.dbt_is_deleted }} = 'True', false) as dbt_was_gone,
      {%- else %}
      false as dbt_was_gone,
      {%- endif %}
      {{ strategy.row_changed }} as dbt_is_changed,
      (source_data.{{ key_names | join(' is null or source_data.') }} is null)
        and (select count(*) > 0 from repeated_keys) as dbt_may_be_another
    from source_data
    {{ 'full' if closes_deletes else 'left' }} join snapshotted_data
      on {{ qbeast_snapshot_same_key(keys, 'snapshotted_data') }}
    left join closed_data
      on snapshotted_data.dbt_is_present is null
      and {{ qbeast_snapshot_same_key(keys, 'closed_data') }}
  ),

  changes as (
    select *,
      if(dbt_begins_at_updated_at, dbt_row_updated_at, greatest({{ now }}, dbt_known_until)) as dbt_changed_at,
      explode(case
        when dbt_is_gone and not dbt_was_gone then array('delete' {{- ", 'insert'" if records_deletes }})
        when dbt_is_new then array('insert')
        when dbt_is_changed and dbt_may_be_another then raise_error('{{ escape_single_quotes(ambiguous) }}')
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


{% macro qbeast_snapshot_key(keys) -%}
  {%- for key in keys -%}
    {{ key }} as dbt_unique_key_{{ loop.index }}{{ ', ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}


{% macro qbeast_snapshot_same_key(keys, data) -%}
  {%- for key in keys -%}
    {{ data }}.dbt_unique_key_{{ loop.index }} <=> source_data.dbt_unique_key_{{ loop.index }}
    {{- ' and ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}


{# dbt-spark's, but NULL and the empty text, two values of a key, have two ids. #}
{% macro qbeast__snapshot_hash_arguments(args) -%}
  md5(
    {%- for arg in args -%}
      coalesce(cast({{ arg }} as string), chr(0)) {{- " || '|' || " if not loop.last }}
    {%- endfor -%}
  )
{%- endmacro %}


{# dbt's own compares names of columns as they are written, which Spark does not: a column whose name
   is written in another case would count as new, and every row as changed, on every run. #}
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
