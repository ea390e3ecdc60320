{# A SQL model stored with a Qbeast index. What is done with its rows is decided in Python
   (dbt/adapters/qbeast/writing.py); here are dbt's steps around it. #}
{% materialization qbeast, adapter='qbeast', supported_languages=['sql'] %}
  {{ return(qbeast_build_model()) }}
{% endmaterialization %}


{% macro qbeast_build_model() %}
  {%- set spec = adapter.qbeast_model_spec(config, model) -%}
  {%- set existing = load_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set is_delta_table = existing is not none and existing.is_table and existing.is_delta -%}
  {%- set append = spec.is_incremental and is_delta_table and not should_full_refresh() -%}

  {{ run_hooks(pre_hooks) }}

  {%- set query = compiled_code -%}
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(query) }}
    {%- set query = get_select_subquery(query) -%}
  {%- endif -%}
  {# A view or a table of another format has to make room; a Delta table is replaced in place. #}
  {%- if existing is not none and not is_delta_table -%}
    {% do adapter.drop_relation(existing) %}
  {%- endif -%}

  {%- set response = adapter.qbeast_write(target_relation, query, spec, append) -%}
  {% do store_result('main', response=response) %}
  {% do write(query) %}

  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target_relation]}) }}
{% endmacro %}
