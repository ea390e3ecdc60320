{# The steps for every table that is built from a query (docs/flow/qbeast.md). Python decides what to
   do with the rows of an indexed table (dbt/adapters/qbeast/models/write.py); SQL statements build a
   table without an index. #}
{% macro qbeast_build_model(is_indexed) %}
  {%- do adapter.qbeast_check_constraints(model) -%}
  {%- set built_from = adapter.qbeast_built_from(model, graph) -%}
  {%- set spec = adapter.qbeast_model_spec(config, model, built_from, should_full_refresh())
                 if is_indexed else none -%}
  {%- set inputs_of_batch = qbeast_inputs(model) if model.batch else [] -%}
  {%- set increment = adapter.qbeast_increment(config, context, spec, inputs_of_batch) -%}
  {%- set existing = load_relation(this) -%}
  {%- set plan = adapter.qbeast_build_plan(
      config, model, this, existing, increment, spec, should_full_refresh()) -%}
  {%- set target_relation = plan.target -%}
  {%- set is_incremental_run = plan.action == 'increment' -%}

  {%- if is_incremental_run -%}
    {% do adapter.qbeast_check_same_sample(this, built_from) %}
  {%- endif -%}
  {%- do apply_grants(this, config.get('grants'), should_revoke=false) -%}

  {{ run_hooks(pre_hooks) }}
  {% do qbeast_run_sql_header() %}

  {%- set query = compiled_code -%}
  {%- if model['language'] == 'python' -%}
    {%- set query = adapter.qbeast_run_python(model, compiled_code, graph, inputs_of_batch) -%}
  {%- endif -%}
  {%- if is_indexed -%}
    {%- set query = adapter.qbeast_query_without_slices(query, this, spec) -%}
  {%- endif -%}
  {%- if increment is not none -%}
    {%- set increment = adapter.qbeast_checked_increment(
        increment, query, this, is_incremental_run, is_indexed) -%}
  {%- endif -%}
  {# create_table_as() compares the columns itself, but after what it replaces is renamed. #}
  {%- if (is_indexed or plan.action != 'create') and config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(query) }}
  {%- endif -%}
  {%- if plan.action == 'replace' -%}
    {# Readers keep what is there if Spark cannot even analyse the query. #}
    {% do adapter.qbeast_check_query(query, spec) %}
  {%- endif -%}
  {% do adapter.qbeast_set_aside(plan, existing) %}

  {%- if (is_indexed or is_incremental_run) and config.get('contract').enforced -%}
    {%- set query = get_select_subquery(query) -%}
    {%- if not target_relation.is_delta -%}
      {%- set query = adapter.qbeast_checked_query(query, model) -%}
    {%- endif -%}
  {%- endif -%}
  {%- if is_indexed and not (is_incremental_run and increment.is_custom) -%}
    {% do store_result('main', response=adapter.qbeast_write(
        target_relation, query, spec, increment if is_incremental_run else none)) %}
    {% do write(query) %}
  {%- elif is_incremental_run -%}
    {% do qbeast_add_by_sql(increment, query, target_relation, spec) %}
  {%- else -%}
    {%- call statement('main') -%}
      {{ create_table_as(False, target_relation, query) }}
    {%- endcall -%}
    {% do persist_constraints(target_relation, model) %}
  {%- endif -%}
  {% do adapter.qbeast_drop_replaced() %}
  {% do persist_docs(target_relation, model) %}
  {%- if is_indexed -%}
    {% do qbeast_optimize_model(target_relation, spec, is_incremental_run) %}
  {%- endif -%}

  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmacro %}


{# The refs and sources of a node, limited as in SQL: by a batch, --empty or --sample. A project's own
   `ref` may take other arguments or return text. #}
{% macro qbeast_inputs(model) -%}
  {%- set inputs = [] -%}
  {%- for given in model.refs -%}
    {%- set names = [given.package, given.name] if given.package else [given.name] -%}
    {% do inputs.append(builtins.ref(*names, v=given.version or none)) %}
  {%- endfor -%}
  {%- for names in model.sources -%}
    {% do inputs.append(builtins.source(*names)) %}
  {%- endfor -%}
  {{ return(inputs) }}
{%- endmacro %}


{% macro qbeast_add_by_sql(increment, query, target_relation, spec) %}
  {%- set rows = this.incorporate(path={'identifier': this.identifier ~ '__dbt_tmp'}, type='view')
                     .include(database=false, schema=false) -%}
  {% do adapter.qbeast_create_increment_view(rows, query, target_relation, model, spec, increment) %}
  {%- if increment.strategy == 'insert_overwrite' and increment.partition_by -%}
    {# This affects only this node, which has its own session. #}
    {%- call statement() -%}
      set spark.sql.sources.partitionOverwriteMode = DYNAMIC
    {%- endcall -%}
  {%- endif -%}
  {%- call statement('main') -%}
    {{ qbeast_increment_sql(increment, rows, target_relation) }}
  {%- endcall -%}
{% endmacro %}
