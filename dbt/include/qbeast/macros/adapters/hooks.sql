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
