{# A Delta table is replaced in place: readers always find a table, and none of the old rows is left.
   If it were dropped, the files of an external table would stay, and its rows with them. #}
{% macro qbeast__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
  {%- if not (old_relation.is_delta and config.get('file_format') == 'delta') -%}
    {% do adapter.drop_relation(old_relation) %}
  {%- endif -%}
  {{ return(create_csv_table(model, agate_table)) }}
{% endmacro %}


{% macro qbeast__create_csv_table(model, agate_table) %}
  {%- set types = qbeast_seed_types(model, agate_table) -%}
  {%- set sql -%}
    create {{ 'or replace ' if config.get('file_format') == 'delta' }}table {{ this.render() }} (
      {%- for name in types -%}
        {{ adapter.quote_seed_column(name, model['config'].get('quote_columns')) }} {{ types[name] }}{{ ', ' if not loop.last }}
      {%- endfor -%}
    )
    {{ file_format_clause() }}
    {{ tblproperties_clause() }}
    {{ partition_cols(label="partitioned by") }}
    {{ clustered_cols(label="clustered by") }}
    {{ location_clause() }}
    {{ comment_clause() }}
  {%- endset -%}
  {%- call statement('_') -%}
    {{ sql }}
  {%- endcall -%}
  {{ return(sql) }}
{% endmacro %}


{# The rows go to Spark as typed values, not as SQL text, so that NULLs, quotes, big integers, decimals
   and microseconds arrive exactly as they are in the file. #}
{% macro qbeast__load_csv_rows(model, agate_table) %}
  {%- set types = qbeast_seed_types(model, agate_table) -%}
  {%- set rows = agate_table.limit(0) if flags.EMPTY else agate_table -%}
  {%- do adapter.qbeast_load_seed(this, rows, types, config.get('file_format')) -%}
  {{ return('insert into ' ~ this.render() ~ ' values (' ~ (rows.rows | length) ~ ' rows)') }}
{% endmacro %}


{% macro qbeast_seed_types(model, agate_table) %}
  {%- set given = model['config'].get('column_types', {}) -%}
  {%- set types = {} -%}
  {%- for name in agate_table.column_names -%}
    {%- do types.update({name: given.get(name, adapter.convert_type(agate_table, loop.index0))}) -%}
  {%- endfor -%}
  {{ return(types) }}
{% endmacro %}
