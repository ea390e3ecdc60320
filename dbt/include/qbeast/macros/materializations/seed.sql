{# dbt's own steps. With --empty, it creates the table with the types of the file, and loads no
   rows. #}
{% materialization seed, adapter='qbeast' %}
  {%- set existing = adapter.get_relation(this.database, this.schema, this.identifier) -%}
  {%- if existing is not none and existing.is_view -%}
    {% do exceptions.raise_compiler_error("Cannot seed to '" ~ existing.render() ~ "', it is a view") %}
  {%- endif -%}
  {%- set is_delta = config.get('file_format') == 'delta' -%}
  {%- set target_relation = this.incorporate(type='table', is_delta=is_delta) -%}
  {%- set agate_table, column_types = adapter.qbeast_with_types(load_agate_table(), config, model.name) -%}
  {%- set seed = dict(model, config=dict(model['config'], column_types=column_types)) -%}
  {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}
  {%- set rows = 0 if flags.EMPTY else agate_table.rows | length -%}
  {%- do apply_grants(this, config.get('grants'), should_revoke=false) -%}

  {{ run_hooks(pre_hooks) }}

  {%- if rows -%}
    {% do adapter.qbeast_check_seed(agate_table, qbeast_seed_types(seed, agate_table)) %}
  {%- endif -%}
  {%- set create_sql = create_csv_table(seed, agate_table) if existing is none
                       else reset_csv_table(seed, should_full_refresh(), existing, agate_table) -%}
  {%- set load_sql = load_csv_rows(seed, agate_table) if rows or not is_delta else '' -%}
  {%- set code = 'CREATE' if should_full_refresh() else 'INSERT' -%}
  {%- call noop_statement('main', code ~ ' ' ~ rows, code, rows) -%}
    {{ get_csv_sql(create_sql, load_sql) }}
  {%- endcall -%}
  {% do persist_docs(target_relation, model) %}

  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
