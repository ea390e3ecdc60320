{# A snapshot in a Delta table; with `columns_to_index`, it is stored with an index. The changes of a
   run are a temporary view in this node's own session. #}
{% materialization snapshot, adapter='qbeast' %}
  {%- set is_indexed = adapter.qbeast_is_indexed(config) -%}
  {%- set built_from = adapter.qbeast_built_from(model, graph) -%}
  {%- set spec = adapter.qbeast_model_spec(config, model, built_from) if is_indexed else none -%}
  {%- if is_indexed -%}
    {% do adapter.qbeast_check_macros_of_snapshot(context) %}
  {%- endif -%}
  {%- set existing = load_relation(this) -%}
  {%- do adapter.qbeast_check_snapshot_table(config, this, existing) -%}
  {%- set target_relation = this.incorporate(type='table', is_delta=true) -%}
  {%- do apply_grants(this, config.get('grants'), should_revoke=false) -%}

  {{ run_hooks(pre_hooks) }}
  {% do qbeast_run_sql_header() %}

  {%- set source_query = adapter.qbeast_query_without_slices(compiled_code, this, spec) if is_indexed else compiled_code -%}
  {%- do adapter.qbeast_check_listed_columns(config, source_query) -%}
  {# Strategies read the columns of the node's code. #}
  {%- set node = dict(model, compiled_code=source_query) -%}
  {%- set strategy = strategy_dispatch(config.get('strategy'))(
      node, 'snapshotted_data', 'source_data', node['config'], existing is not none) -%}
  {%- do adapter.qbeast_check_updated_at(strategy, source_query) -%}
  {%- do strategy.update({'scd_id': qbeast_snapshot_scd_id(strategy)}) -%}
  {%- if existing is none -%}
    {%- set query = build_snapshot_table(strategy, source_query) -%}
    {%- if is_indexed -%}
      {% do store_result('main', response=adapter.qbeast_write(target_relation, query, spec)) %}
      {% do write(query) %}
    {%- else -%}
      {%- call statement('main') -%}
        {{ create_table_as(False, target_relation, query) }}
      {%- endcall -%}
    {%- endif -%}
  {%- else -%}
    {% do adapter.qbeast_check_same_sample(target_relation, built_from) %}
    {% do adapter.qbeast_check_complete_source(
        target_relation, strategy.hard_deletes, qbeast_inputs(model), model, graph) %}
    {%- if is_indexed -%}
      {% do adapter.qbeast_check_same_index_of_snapshot(target_relation, spec) %}
    {%- endif -%}
    {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
    {% do adapter.assert_valid_snapshot_target_given_strategy(
        target_relation, columns, strategy, get_columns_in_query(source_query)) %}
    {# Later, a column that the source has lost is one of nulls. #}
    {% do get_columns_in_query(
        'select ' ~ (qbeast_snapshot_keys(strategy) + [strategy.updated_at]) | join(', ')
        ~ ' from (\n' ~ source_query ~ '\n) as source_data') %}
    {%- set changes = qbeast_snapshot_changes(strategy, node, target_relation, columns) -%}
    {%- if is_indexed -%}
      {%- set response = adapter.qbeast_merge_snapshot(
          target_relation, changes.identifier, columns, config.get('dbt_valid_to_current')) -%}
      {% do store_result('main', response=response) %}
    {%- else -%}
      {%- call statement('main') -%}
        {{ snapshot_merge_sql(target_relation, changes, none) }}
      {%- endcall -%}
    {%- endif -%}
  {%- endif -%}
  {% do persist_docs(target_relation, model) %}
  {%- if is_indexed -%}
    {% do qbeast_optimize_model(target_relation, spec, existing is not none) %}
  {%- endif -%}

  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
