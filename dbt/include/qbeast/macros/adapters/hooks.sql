{# Spark has no transactions and no `commit`, so every hook runs, also one that asks to run outside a
   transaction, in the order given. #}
{% macro run_hooks(hooks, inside_transaction=True) %}
  {%- if inside_transaction -%}
    {%- for hook in hooks -%}
      {%- set sql = render(hook.get('sql')) | trim -%}
      {%- if sql -%}
        {%- call statement(auto_begin=false) -%}
          {{ sql }}
        {%- endcall -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}


{# Other adapters put the header before the statement that creates the relation. Spark takes one statement
   at a time, so the header is run before the query, in the same session. #}
{% macro qbeast_run_sql_header() %}
  {%- if config.get('sql_header') -%}
    {% do adapter.qbeast_run_header(config.get('sql_header') | trim) %}
  {%- endif -%}
{% endmacro %}


{# dbt's own, but without the header, which has been run. #}
{% macro qbeast__get_empty_subquery_sql(select_sql, select_sql_header=none) %}
  {{ return(default__get_empty_subquery_sql(select_sql)) }}
{% endmacro %}
