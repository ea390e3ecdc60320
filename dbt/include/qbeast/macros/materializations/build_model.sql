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
  {%- set is_delta = is_indexed or config.get('file_format') == 'delta' -%}
  {%- set is_iceberg = not is_indexed and config.get('file_format') == 'iceberg' -%}
  {# dbt caches this relation for the next batch of the same run. #}
  {%- set target_relation = this.incorporate(type='table', is_delta=is_delta, is_iceberg=is_iceberg) -%}
  {%- set is_in_place = existing is not none and existing.is_table
                        and ((existing.is_delta and is_delta) or (existing.is_iceberg and is_iceberg)) -%}
  {%- set changes_table = increment is not none and existing is not none and existing.is_table
                          and not should_full_refresh() -%}
  {%- set adds = changes_table and (is_in_place or not is_delta) -%}

  {%- if adds -%}
    {% do adapter.qbeast_check_same_sample(this, built_from) %}
  {%- elif changes_table -%}
    {% do adapter.qbeast_refuse_other_format(existing, model, spec) %}
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
    {%- set increment = adapter.qbeast_checked_increment(increment, query, this, adds, is_indexed) -%}
  {%- endif -%}
  {%- set is_replaced = existing is not none and not is_in_place and not adds -%}
  {# create_table_as() compares the columns itself, but after what it replaces is dropped. #}
  {%- if (is_indexed or adds or is_replaced) and config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(query) }}
  {%- endif -%}
  {# Delta and Iceberg tables are replaced in place. A view or a table in another format is dropped. #}
  {%- if is_replaced -%}
    {% do adapter.drop_relation(existing) %}
  {%- endif -%}

  {%- if (is_indexed or adds) and config.get('contract').enforced -%}
    {%- set query = get_select_subquery(query) -%}
    {%- if not is_delta -%}
      {%- set query = adapter.qbeast_checked_query(query, model) -%}
    {%- endif -%}
  {%- endif -%}
  {%- if is_indexed and not (adds and increment.is_custom) -%}
    {% do store_result('main', response=adapter.qbeast_write(
        target_relation, query, spec, increment if adds else none)) %}
    {% do write(query) %}
  {%- elif adds -%}
    {% do qbeast_add_by_sql(increment, query, target_relation, spec) %}
  {%- else -%}
    {%- call statement('main') -%}
      {{ create_table_as(False, target_relation, query) }}
    {%- endcall -%}
    {% do persist_constraints(target_relation, model) %}
  {%- endif -%}
  {% do persist_docs(target_relation, model) %}
  {%- if is_indexed -%}
    {% do qbeast_optimize_after_run(target_relation, spec, adds) %}
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
  {% do adapter.qbeast_create_increment_view(rows, query, target_relation, increment, spec, model) %}
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
