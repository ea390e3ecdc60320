{# The statement that adds the rows of an incremental run to a table without an index, in one commit
   for every strategy. A project's own strategy, a macro named get_incremental_<name>_sql, also works
   for tables with an index. #}
{% macro qbeast_increment_sql(increment, rows, target) %}
  {%- set given = adapter.get_columns_in_relation(rows) | map(attribute='name') | map('lower') | list -%}
  {%- set columns = [] -%}
  {%- for column in adapter.get_columns_in_relation(target) if column.name | lower in given -%}
    {% do columns.append(column) %}
  {%- endfor -%}
  {%- set strategy = increment.strategy -%}
  {%- if strategy == 'append' -%}
    {{ return(qbeast_insert_sql('into', rows, target, columns)) }}
  {%- elif strategy == 'merge' -%}
    {{ return(qbeast_merge_sql(increment, rows, target, columns)) }}
  {%- elif strategy == 'insert_overwrite' -%}
    {{ return(qbeast_insert_sql('overwrite', rows, target, columns)) }}
  {%- elif strategy == 'delete+insert' -%}
    {{ return(qbeast_delete_insert_sql(increment, rows, target, columns)) }}
  {%- elif strategy in ('replace_where', 'microbatch') -%}
    {{ return(qbeast_replace_where_sql(increment.replaced_rows(), rows, target, columns)) }}
  {%- endif -%}
  {%- set own = adapter.get_incremental_strategy_macro(context, strategy) -%}
  {{ return(own({
      'target_relation': target,
      'temp_relation': rows,
      'unique_key': config.get('unique_key'),
      'dest_columns': columns,
      'incremental_predicates': config.get('predicates') or config.get('incremental_predicates')})) }}
{% endmacro %}


{% macro qbeast_insert_sql(how, rows, target, columns) %}
  {%- set names = columns | map(attribute='quoted') | join(', ') -%}
  insert {{ how }} {{ target }} ({{ names }})
  select {{ names }} from {{ rows }}
{% endmacro %}


{# Without a key nothing matches, and all rows are inserted. #}
{% macro qbeast_merge_sql(increment, rows, target, columns) %}
  {%- set conditions = increment.predicates | list if increment.unique_key else ['false'] -%}
  {%- for key in increment.quoted_key -%}
    {% do conditions.append('DBT_INTERNAL_SOURCE.' ~ key ~ ' = DBT_INTERNAL_DEST.' ~ key) %}
  {%- endfor -%}
  {%- set updated = [] -%}
  {%- for column in columns if increment.updates(column.name) -%}
    {% do updated.append(column.quoted) %}
  {%- endfor -%}
  {%- set names = columns | map(attribute='quoted') | list -%}
  merge into {{ target }} as DBT_INTERNAL_DEST
  using {{ rows }} as DBT_INTERNAL_SOURCE
  on ({{ conditions | join(') and (') }})
  {%- if updated %}
  when matched then update set
    {% for name in updated %}{{ name }} = DBT_INTERNAL_SOURCE.{{ name }}{{ ', ' if not loop.last }}{% endfor %}
  {%- endif %}
  when not matched then insert ({{ names | join(', ') }})
    values (DBT_INTERNAL_SOURCE.{{ names | join(', DBT_INTERNAL_SOURCE.') }})
{% endmacro %}


{% macro qbeast_replace_where_sql(condition, rows, target, columns) %}
  insert into {{ target }} replace where ({{ condition }})
  select {{ columns | map(attribute='quoted') | join(', ') }} from {{ rows }}
{% endmacro %}


{# Rows that delete have only their keys, and rows that insert match nothing, so one MERGE does both.
   The rows' columns are renamed, so that a predicate's columns are the table's. #}
{% macro qbeast_delete_insert_sql(increment, rows, target, columns) %}
  merge into {{ target }} as DBT_INTERNAL_DEST
  using (
    select distinct true as dbt_internal_deletes
      {%- for key in increment.quoted_key %}, {{ key }} as dbt_internal_key_{{ loop.index }}{% endfor %}
      {%- for column in columns %}, null as dbt_internal_{{ loop.index }}{% endfor %}
    from {{ rows }}
    union all
    select false
      {%- for key in increment.quoted_key %}, null{% endfor %}
      {%- for column in columns %}, {{ column.quoted }}{% endfor %}
    from {{ rows }}
  ) as DBT_INTERNAL_SOURCE
  on dbt_internal_deletes
    {%- for key in increment.quoted_key %} and dbt_internal_key_{{ loop.index }} = DBT_INTERNAL_DEST.{{ key }}{% endfor %}
    {%- for predicate in increment.predicates %} and ({{ predicate }}){% endfor %}
  when matched then delete
  when not matched and not dbt_internal_deletes then
    insert ({{ columns | map(attribute='quoted') | join(', ') }})
    values ({% for column in columns %}dbt_internal_{{ loop.index }}{{ ', ' if not loop.last }}{% endfor %})
{% endmacro %}
