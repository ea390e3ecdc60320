{# The rows go to Spark as typed values, not as SQL text, so that NULLs, quotes, big integers, decimals
   and microseconds arrive exactly as they are in the file. #}
{% macro qbeast__load_csv_rows(model, agate_table) %}
  {%- set override = model['config'].get('column_types', {}) -%}
  {%- set types = {} -%}
  {%- for name in agate_table.column_names -%}
    {%- do types.update({name: override.get(name, adapter.convert_type(agate_table, loop.index0))}) -%}
  {%- endfor -%}
  {%- do adapter.qbeast_load_seed(this, agate_table, types) -%}
  {{ return('insert into ' ~ this.render() ~ ' values (' ~ (agate_table.rows | length) ~ ' rows)') }}
{% endmacro %}
