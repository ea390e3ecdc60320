{# dbt-spark's clauses of `create table` and `create view`, with every name and text escaped, so that quotes in
   it cannot end the literal. #}
{% macro qbeast__tblproperties_clause() -%}
  {%- set given = config.get('tblproperties') or {} -%}
  {{ qbeast_properties(dict(given, **adapter.qbeast_sample_properties(model, graph))) }}
{%- endmacro %}


{# The properties of a new table or view, also those that record the sample it is built from. The statement
   itself sets them, so a run that is killed cannot leave a sample without this record. #}
{% macro qbeast_properties(properties) -%}
  {%- if properties %}
    tblproperties ({{ qbeast_literal_pairs(properties, ' = ') }})
  {%- endif %}
{%- endmacro %}


{% macro qbeast__options_clause() -%}
  {%- set options = config.get('options') -%}
  {%- if options is not none %}
    options ({{ qbeast_literal_pairs(options, ' ') }})
  {%- endif %}
{%- endmacro %}


{% macro qbeast__location_clause() -%}
  {%- set location = adapter.qbeast_location(config, model) -%}
  {%- if location is not none %}
    location {{ adapter.qbeast_literal(location) }}
  {%- endif %}
{%- endmacro %}


{% macro qbeast__comment_clause() -%}
  {%- set persist_docs = config.get('persist_docs', {}) -%}
  {%- if persist_docs is not mapping and persist_docs -%}
    {% do exceptions.raise_compiler_error("Invalid value provided for 'persist_docs'. Expected dict but got value: " ~ persist_docs) %}
  {%- elif persist_docs is mapping and persist_docs.get('relation', false) %}
    comment {{ adapter.qbeast_literal(model.description) }}
  {%- endif %}
{%- endmacro %}


{% macro get_column_comment_sql(column_name, column_dict) -%}
  {%- set comment = adapter.qbeast_comment_of_column(column_name, column_dict) -%}
  {{ adapter.quote(column_name) }}
  {%- if comment %} comment {{ adapter.qbeast_literal(comment) }}{% endif -%}
{%- endmacro %}


{% macro qbeast_literal_pairs(pairs, between) -%}
  {%- for name in pairs -%}
    {{ adapter.qbeast_literal(name) }}{{ between }}{{ adapter.qbeast_literal(pairs[name]) }}{{ ', ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}
