{# Spark has no transactions, and takes no `commit`: every hook runs, those that ask to run outside of
   a transaction too, in the order in which they are given. #}
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
