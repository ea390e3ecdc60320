{# dbt's own macro compares column names with their case, which Spark ignores. A column spelled in
   another case would count as new, and every row as changed, on every run. #}
{% macro snapshot_check_all_get_existing_columns(node, target_exists, check_cols_config) -%}
  {%- if not target_exists -%}
    {{ return((false, [])) }}
  {%- endif -%}
  {%- if check_cols_config == 'all' -%}
    {%- set checked = get_columns_in_query(node['compiled_code']) -%}
  {%- elif check_cols_config is iterable and check_cols_config | length > 0 -%}
    {%- set checked = get_columns_in_query(
        'select ' ~ check_cols_config | join(', ') ~ ' from (\n' ~ node['compiled_code'] ~ '\n) as checked') -%}
  {%- else -%}
    {% do exceptions.raise_compiler_error("Invalid value for 'check_cols': " ~ check_cols_config) %}
  {%- endif -%}
  {%- set target = adapter.get_relation(database=node.database, schema=node.schema, identifier=node.alias) -%}
  {%- set present = adapter.get_columns_in_relation(target) | map(attribute='name') | map('lower') | list -%}
  {%- set common = [] -%}
  {%- for name in checked if name | lower in present -%}
    {% do common.append(adapter.quote(name)) %}
  {%- endfor -%}
  {{ return((common | length < checked | length, common)) }}
{%- endmacro %}
